"""Operations that tools and routes share: the types of the request and of its answer, and the use case between them."""
