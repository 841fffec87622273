package authenticode_test

import (
	"errors"
	"fmt"
	"os"

	"slipway.dev/slipway/images/authenticode"
)

// The signers of a kernel say which machines with Secure Boot start it.
func ExampleSigners() {
	f, err := os.Open("vmlinuz")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	signers, err := authenticode.Signers(f, info.Size())
	if errors.Is(err, authenticode.ErrNotPE) {
		fmt.Println("it is no kernel that UEFI starts")
		return
	}
	for _, s := range signers {
		fmt.Println(s.Name, "by", s.Issuer)
	}
}
