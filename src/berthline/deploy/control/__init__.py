"""The controller: cycles of looking, deciding, checking and acting; rules; the guard."""
