"""What a page, a terminal and a document say of studies: words first, then the sections that show them."""
