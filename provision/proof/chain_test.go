package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestAnImageOfARegistryIsTheOneThatItsDigestNames(t *testing.T) {
	layer, other := digestOf([]byte("disk")), digestOf([]byte("another disk"))
	manifest := fmt.Appendf(nil, `{"config":{"digest":%q},"layers":[{"digest":%q}]}`, other, layer)
	index := fmt.Appendf(nil, `{"manifests":[{"digest":%q},{"digest":%q}]}`, other, digestOf(manifest))
	foreign := fmt.Appendf(nil, `{"layers":[{"digest":%q}]}`, other)
	for name, c := range map[string]struct {
		asked, layer string
		chain        [][]byte
		why          string
	}{
		"a manifest":                       {digestOf(manifest), layer, [][]byte{manifest}, ""},
		"an index":                         {digestOf(index), layer, [][]byte{index, manifest}, ""},
		"nothing is shown":                 {digestOf(manifest), layer, nil, "does not show"},
		"another manifest":                 {digestOf(manifest), other, [][]byte{foreign}, "the expected one is"},
		"another layer":                    {digestOf(manifest), other, [][]byte{manifest}, "does not name"},
		"no layer":                         {digestOf(manifest), "", [][]byte{manifest}, "unknown"},
		"the index names another manifest": {digestOf(index), other, [][]byte{index, foreign}, "names no manifest"},
		"an index alone":                   {digestOf(index), digestOf(manifest), [][]byte{index}, "does not name"},
		"the layer itself is no manifest":  {layer, layer, [][]byte{[]byte("disk")}, "not JSON"},
		"too many":                         {digestOf(index), layer, [][]byte{index, index, manifest}, "at most 2"},
		"too large":                        {digestOf(manifest), layer, [][]byte{[]byte(strings.Repeat(" ", maxChainBytes+1))}, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			if why := Unchained(c.asked, c.layer, c.chain); !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

func FuzzUnchained(f *testing.F) {
	f.Add([]byte(`{"layers":[{"digest":"sha256:00"}]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if Unchained("sha256:00", "sha256:00", [][]byte{a, b}) == "" {
			t.Error("nothing has that digest")
		}
	})
}
