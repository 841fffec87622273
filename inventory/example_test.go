package inventory_test

import (
	"errors"
	"fmt"

	"slipway.dev/slipway/inventory"
)

// An Error has a kind for programs, a message and a hint for people, and a cause for the log.
func ExampleErrorf() {
	cause := errors.New("connection refused")
	err := inventory.Errorf(inventory.Unavailable, "the controller of node-1 does not answer: %w", cause).
		WithHint("check its cable and address")
	wrapped := fmt.Errorf("switch node-1 on: %w", err)

	fmt.Println(inventory.KindOf(wrapped))
	fmt.Println(inventory.MessageOf(wrapped))
	fmt.Println(inventory.HintOf(wrapped))
	fmt.Println(errors.Is(wrapped, cause))
	// Output:
	// unavailable
	// the controller of node-1 does not answer: connection refused
	// check its cable and address
	// true
}

// Every other error has no kind.
func ExampleKindOf() {
	fmt.Printf("%q\n", inventory.KindOf(errors.New("disk on fire")))
	// Output:
	// ""
}

func ExampleNameFrom() {
	fmt.Println(inventory.NameFrom("Enp3s0.100", "boot"), inventory.NameFrom("__", "boot"))
	// Output: enp3s0-100 boot
}
