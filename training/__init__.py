"""The science: how models and agents learn. Imports no cloud, no database and no web framework.

`rl/` and `supervised/` are the kinds of training, `tasks/` what the engine knows of them.

Glossary, in the order in which a round uses the words:

- *spec*: what a user wants trained, frozen and validated (`training.spec`).
- *plan*: how many actors a round gets, and why (`training.scaling`).
- *call*: one function invocation on a platform (`training.engine.messages`).
- *outcome*: the result of a call. Each call has exactly one.
- *slot*: the place of one actor in a round. Its state travels from call to call.
- *round*: one update of the policy from a declared number of samples, published as a new version.
- *report*: the measurements of a round; a *cost* is what the round was charged; an *event* carries both.
"""
