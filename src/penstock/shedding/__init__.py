"""What is dropped when there is too little memory, and what that costs the answer."""
