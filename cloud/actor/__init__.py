"""The code that is shipped to clouds: it runs calls. Imports only training, cloud.actor.wire and cloud.failures."""
