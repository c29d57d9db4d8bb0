"""Bills: records of work, prices, tariffs, the full bill, the papers' formulas, and the same run priced elsewhere."""
