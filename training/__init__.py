"""The science: what is learned, and how. Knows no cloud, no database and no web page.

Glossary, in the order in which a round meets the words:

- *spec*: what a person asked for, frozen and validated (`training.spec`).
- *plan*: how many actors a round gets, and why (`training.scaling`).
- *call*: one function invocation on a platform (`training.messages`).
- *outcome*: what came back of a call; exactly one each.
- *slot*: one of the actors of a round; its environments' state travels from call to call.
- *round*: one published version of the policy over a declared number of samples.
- *report*: what a round did and took; a *cost* is what it was charged; an *event* tells both.
"""
