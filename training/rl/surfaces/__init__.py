"""A policy's objective as a surface over its parameters: gradients, products by its Hessian, ends of its spectrum."""
