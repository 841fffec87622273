package contract

import (
	"errors"

	"slipway.dev/slipway/inventory"
)

// BootstrapError says why a machine cannot boot with the bootstrap data that it was given.
type BootstrapError struct {
	Reason string `json:"reason"` // UnsupportedFormat, UnsupportedDirective or InvalidBootstrapData
	Detail string `json:"detail"` // for people, without any of the data
	Hint   string `json:"hint,omitempty"`
}

// Error implements error.
func (e *BootstrapError) Error() string { return e.Detail }

// Unwrap returns the error as people see it.
func (e *BootstrapError) Unwrap() error {
	return &inventory.Error{Kind: inventory.Invalid, Msg: e.Detail, Hint: e.Hint}
}

// BootstrapReason returns why bootstrap data cannot be used, "" when err is about something else.
func BootstrapReason(err error) string {
	if e, ok := errors.AsType[*BootstrapError](err); ok {
		return e.Reason
	}
	return ""
}
