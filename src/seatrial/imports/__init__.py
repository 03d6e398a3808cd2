"""Result files of other tools: bytes -> what they say, one pure reader a file."""
