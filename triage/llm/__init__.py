"""The one seam to chat models: values.py says what is asked and answered, open.py makes a model of the settings."""
