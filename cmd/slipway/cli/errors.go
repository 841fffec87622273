package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"slipway.dev/slipway/inventory"
)

// Exit codes.
const (
	exitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Exited is what the help flag ends parsing with.
type Exited int

// Conclude says what went wrong and returns the exit code.
func Conclude(err error, stderr io.Writer) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, ErrSaid):
		return ExitFailed
	case errors.As(err, &usage):
		Complain(stderr, usage.err)
		return ExitUsage
	}
	Complain(stderr, err)
	return ExitFailed
}

// ErrSaid is a failure that has been shown already.
var ErrSaid = errors.New("shown already")

// usageError is a flag or argument that cannot be meant.
type usageError struct{ err *inventory.Error }

func (e *usageError) Error() string { return e.err.Error() }

// Usage makes a usageError.
func Usage(hint, format string, args ...any) error {
	return &usageError{inventory.Errorf(inventory.Invalid, format, args...).WithHint("%s", hint)}
}

// Complain writes an error and its hint.
func Complain(stderr io.Writer, err error) {
	var said *inventory.Error
	switch {
	case errors.As(err, &said):
		if said.Kind == inventory.Unauthorized {
			said = said.WithHint("give a token with --token-file FILE or SLIPWAY_TOKEN; on the server: slipway token create NAME")
		}
		fmt.Fprintln(stderr, "error:", PlainLines(said.Msg))
		if said.Hint != "" {
			fmt.Fprintln(stderr, "hint:", PlainLines(said.Hint))
		}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "error: interrupted")
	default:
		fmt.Fprintln(stderr, "error:", PlainLines(err.Error()))
	}
}
