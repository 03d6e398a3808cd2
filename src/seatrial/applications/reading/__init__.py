"""What reads texts of other programs: lines, tables, JSON, logs; and what declares the figures in them."""
