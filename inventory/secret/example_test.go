package secret_test

import (
	"crypto/rand"
	"fmt"

	"slipway.dev/slipway/inventory/secret"
)

// A sealed value opens under its own name only: nobody can put it in another's place.
func Example() {
	text, _ := secret.NewKey(rand.Reader)
	key, _ := secret.ParseKey(text)
	box, err := secret.NewBox(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, _ := box.Seal("registry-password", []byte("hunter2"))
	plain, err := box.Open("registry-password", sealed)
	fmt.Println(string(plain), err)
	_, err = box.Open("another-name", sealed)
	fmt.Println(err != nil)
	// Output:
	// hunter2 <nil>
	// true
}
