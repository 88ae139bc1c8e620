"""What drawing tokens needs: uniform numbers, stop texts, the generation's options."""
