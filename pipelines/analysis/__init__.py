"""Statistics and decision arithmetic as pure functions of plain numbers."""
