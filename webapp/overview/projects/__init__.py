"""Pages of projects: made, renamed, archived. `accounts` has their table; this app also reads what runs in them."""
