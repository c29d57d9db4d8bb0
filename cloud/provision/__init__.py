"""What a cloud needs before functions can run there, and how it is taken away again."""
