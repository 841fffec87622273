package appliance

import (
	"strings"
	"testing"
)

func TestTryIsSeenByNobodyElse(t *testing.T) {
	for name, c := range map[string]struct {
		try  TryCommand
		uid  int
		want string
	}{
		"every address":    {TryCommand{Hosts: 2, Listen: "0.0.0.0:8067"}, 0, "not a loopback address"},
		"another address":  {TryCommand{Hosts: 2, Listen: "192.0.2.1:8067"}, 0, "not a loopback address"},
		"a name":           {TryCommand{Hosts: 2, Listen: "localhost:8067"}, 0, "not a loopback address"},
		"too many":         {TryCommand{Hosts: 201, Listen: "127.0.0.1:8067"}, 0, "between 1 and 200"},
		"none":             {TryCommand{Listen: "127.0.0.1:8067"}, 0, "between 1 and 200"},
		"a negative pace":  {TryCommand{Hosts: 2, Listen: "127.0.0.1:8067", Name: "t", Pace: -1}, 0, "negative"},
		"somebody else":    {TryCommand{Hosts: 2, Listen: "127.0.0.1:8067", Name: "t"}, 1000, "root only"},
		"a path":           {TryCommand{Hosts: 2, Listen: "127.0.0.1:8067", Name: "a/../b"}, 0, "cannot be a namespace"},
		"root on loopback": {TryCommand{Hosts: 2, Listen: "[::1]:8067", Name: "t"}, 0, ""},
	} {
		err := c.try.check(c.uid)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
