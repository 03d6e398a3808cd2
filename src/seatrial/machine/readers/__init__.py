"""Pure readers: text or bytes of one format -> values, or ParseError. No file is opened here."""
