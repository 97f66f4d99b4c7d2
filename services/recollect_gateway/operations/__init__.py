"""What tools and routes do alike: the shapes of a request and of its answer, and the use case between them."""
