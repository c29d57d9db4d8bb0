"""The code that is shipped to clouds: it runs calls. Imports only training, cloud.wire and cloud.failures."""
