"""From work to a bill: records, prices, tariffs, the full bill, the papers' formulas, the same run elsewhere."""
