-- What is kept of a session, such as the address from which somebody signed in, goes some time after it has ended: with a later
-- sign-in of the same person, as whom alone it is seen.
GRANT DELETE ON sessions TO recollect_app;
