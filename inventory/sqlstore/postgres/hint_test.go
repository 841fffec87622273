package postgres

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// TestTheHintsOfAStartAreTrue: each says what is wrong in the address, and none promises that a server that ends goes on.
func TestTheHintsOfAStartAreTrue(t *testing.T) {
	for url, want := range map[string][2]string{
		"postgres://a@127.0.0.1:1/b?sslmode=disable":                            {"cannot be reached", "runs at 127.0.0.1:1"},
		"postgres://a@127.0.0.1:1/b?sslmode=yes":                                {"no sslmode of PostgreSQL", "verify-full"},
		"postgres://a:secret@127.0.0.1:1/b?sslmode=yes":                         {"no sslmode of PostgreSQL", "verify-full"},
		"postgres://a@127.0.0.1:1/b?sslmode=verify-full&sslrootcert=/no/ca.crt": {"cannot read the file /no/ca.crt", "sslrootcert"},
	} {
		_, err := Open(t.Context(), Config{URL: url})
		e, ok := err.(*inventory.Error)
		if !ok || !strings.Contains(e.Msg, want[0]) || !strings.Contains(e.Hint, want[1]) {
			t.Errorf("%s: %v, want %q", url, err, want)
			continue
		}
		if strings.Contains(e.Hint, "goes on") || strings.Contains(e.Msg+e.Hint, "secret") {
			t.Errorf("%s: %s, %s", url, e.Msg, e.Hint)
		}
	}
}
