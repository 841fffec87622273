package rest

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestABodyThatIsNotUTF8IsRefusedWithItsPlace sends bytes that Go's decoder would turn into U+FFFD in silence.
func TestABodyThatIsNotUTF8IsRefusedWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"Latin-1":           {"{\n \"config\": \"caf\xe9\"}", "line 2, column 16 of the body has a byte that is not UTF-8"},
		"a cut character":   {"{\"config\": \"\xc3\"}", "line 1, column 13"},
		"CP1252 quotes":     {"{\"config\": \"\x93x\x94\"}", "line 1, column 13"},
		"UTF-16":            {"\xff\xfe{\x00}\x00", "UTF-16"},
		"a byte order mark": {"\ufeff{}", "byte order mark"},
		"half a character":  {"{\"config\": \"x\\ud83d\"}", `line 1, column 14 of the body has \ud83d`},
		"the other half":    {"{\"config\": \"\\uDE00\"}", `\uDE00`},
	} {
		err := strictJSON.Unmarshal([]byte(c.body), new(any))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for _, good := range []string{"{\"a\": \"café\"}", `{"a": "\ud83d\ude00"}`, `{"a": "\\\\ud83d"}`, `{"a": "\u00e9\n"}`, "{}", `["\\"]`} {
		if err := strictJSON.Unmarshal([]byte(good), new(any)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func FuzzLoneSurrogate(f *testing.F) {
	f.Add(`{"a": "\ud83d\ude00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil || TextFault([]byte(text)) != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(again), "\ufffd") && !strings.Contains(text, "\ufffd") && !strings.Contains(strings.ToLower(text), `\ufffd`) {
			t.Errorf("%q becomes %q", text, again)
		}
	})
}
