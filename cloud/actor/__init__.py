"""What is shipped to clouds: bodies of calls and a handler. Imports training, cloud.wire and cloud.failures only."""
