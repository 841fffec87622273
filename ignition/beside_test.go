package ignition

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestFilesBesideADocumentBecomePartOfIt(t *testing.T) {
	const doc = "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - {path: /a, contents: {local: ./etc/motd}}\n"
	text, err := WithFiles(doc, map[string][]byte{"etc/motd": []byte("hello")})
	if err != nil || !strings.Contains(text, `source: "data:;base64,aGVsbG8="`) {
		t.Errorf("%v\n%s", err, text)
	}
	many := map[string][]byte{}
	for i := range MaxFiles + 1 {
		many[strconv.Itoa(i)] = nil
	}
	for _, tc := range []struct {
		name  string
		text  string
		files map[string][]byte
		says  string
	}{
		{"a file that is missing", doc, nil, "5:36: no file ./etc/motd came with the document"},
		{"a file that is not named", doc, map[string][]byte{"etc/motd": nil, "other": nil}, "does not name the file other"},
		{"outside of the folder", doc, map[string][]byte{"../etc/motd": nil}, "no name of a file in the folder"},
		{"a whole path", doc, map[string][]byte{"/etc/motd": nil}, "no name of a file in the folder"},
		{"a document that leaves the folder", strings.ReplaceAll(doc, "./etc", "../etc"), map[string][]byte{}, "no file ../etc/motd came"},
		{"too many", doc, many, "at most 64"},
		{"too large", doc, map[string][]byte{"etc/motd": bytes.Repeat([]byte("x"), inventory.MaxConfigBytes+1)}, "more than"},
		{"a tree", "storage: {trees: [{local: x}]}\n", map[string][]byte{"x": nil}, "a tree of local files"},
	} {
		if _, err := WithFiles(tc.text, tc.files); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.says)
		}
	}
}
