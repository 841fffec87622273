package ignition

import "testing"

func TestAKeyThatStandsTwiceIsFound(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":1,"b":{"a":1,"c":[{"a":1},{"a":2}]}}`: "",
		`{"a":1,"a":2}`: "a document:1:8",
		"{\"p\":{\"x\":\"p\"},\n \"q\":[],\n  \"p\":null}": "p document:3:3",
		`{"a":{"k":"k","l":["k","k"],"k":1}}`:              "k document:1:29",
		`{"a":{"b":{}},"a":{"b":{}}`:                       "a document:1:15",
		`{"a":"a","b":"a"}`:                                "",
		`[{"a":1},{"a":1}]`:                                "",
		`{"a":1} {"a":1}`:                                  "",
		`}`:                                                "",
		`{"a"`:                                             "",
		"":                                                 "",
	} {
		key, source := twice([]byte(doc))
		if got := key + " " + source; got != want && (source != "" || want != "") {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}

func FuzzTwice(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1},{"b":2}],"a":{}}`))
	f.Fuzz(func(t *testing.T, doc []byte) { twice(doc) })
}
