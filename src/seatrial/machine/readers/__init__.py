"""Pure readers: text or bytes of one format -> values, or ParseError. They open no files."""
