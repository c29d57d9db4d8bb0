"""Data sets as rows of numbers and a class each, kept as shards that are named by their hash.

`rows` holds features in memory, `shard` writes them as bytes, `manifest` lists a data set's shards and says what its
numbers mean. `dataset` divides a table into shards. `shipped`, `glyphs`, `generated` and `formats` make tables;
`readers` make data sets of files that people upload.
"""
