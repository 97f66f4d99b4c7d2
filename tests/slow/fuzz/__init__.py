"""Generated requests: every tool and every route with arguments that nobody wrote down."""
