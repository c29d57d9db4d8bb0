"""What stands in people's accounts because of us: rows written before it is made, and looks at whether it is so."""
