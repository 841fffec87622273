package invite

import (
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

const testPin = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func draw(t testing.TB) Code {
	t.Helper()
	c, err := newCode(testPin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACodeIsReadAsItWasWritten(t *testing.T) {
	c := draw(t)
	for _, text := range []string{c.Text(), strings.ToUpper(c.Text()), " " + c.Text() + "\n"} {
		if got, err := ParseCode(text); err != nil || got != c {
			t.Errorf("%q: %v", text, err)
		}
	}
	if c.Pin() != testPin {
		t.Errorf("pin %s", c.Pin())
	}
	if other := draw(t); other.secret == c.secret || other.id == c.id {
		t.Error("two codes are the same")
	}
	if _, err := newCode("12"); err == nil {
		t.Error("a short pin makes a code")
	}
}

// TestAWrongCodeIsNotQuoted changes each character of a code. A typing error must not look like an attack on the line.
func TestAWrongCodeIsNotQuoted(t *testing.T) {
	text := draw(t).Text()
	wrong := []string{
		"", "x", text[1:], text + "a", strings.Repeat("1", len(text)), strings.Repeat("é", len(text)/2),
		text[:40] + " " + text[40:],
	}
	for i := range text {
		b := []byte(text)
		if b[i] = 'a'; text[i] == 'a' {
			b[i] = 'b'
		}
		wrong = append(wrong, string(b))
	}
	for _, w := range wrong {
		_, err := ParseCode(w)
		if !inventory.IsKind(err, inventory.Invalid) || inventory.HintOf(err) == "" {
			t.Errorf("%q: %v", w, err)
		} else if len(w) > 10 && strings.Contains(err.Error(), w[:10]) {
			t.Errorf("the error quotes the code: %v", err)
		}
	}
}

// A code in a log would let its readers in.
func TestACodeIsNotInAFormattedText(t *testing.T) {
	c := draw(t)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %s", c, struct{ C Code }{c}, &c)} {
		if strings.Contains(text, fmt.Sprint(c.secret)[1:20]) || strings.Contains(text, c.Text()) || !strings.Contains(text, c.ID()) {
			t.Errorf("it shows %s", text)
		}
	}
}

func TestAddressesOfInstances(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":                          "192.0.2.1:8069",
		"192.0.2.1:9":                        "192.0.2.1:9",
		"192.0.2.1:8069, [2001:db8::1]:99":   "192.0.2.1:8069 [2001:db8::1]:99",
		"2001:db8::1":                        "[2001:db8::1]:8069",
		"[2001:db8::1]":                      "[2001:db8::1]:8069",
		"node1":                              "node1:8069",
		"node1.example.org:8070":             "node1.example.org:8070",
		"":                                   "",
		",":                                  "",
		"node1:0":                            "",
		"node1:65536":                        "",
		"https://node1":                      "",
		"node1/x":                            "",
		"user@node1":                         "",
		"no de":                              "",
		":8069":                              "",
		strings.Repeat("node1,", 40) + "end": "",
	} {
		got, err := ParseAddresses(text)
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if err != nil && !inventory.IsKind(err, inventory.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseCode(f *testing.F) {
	f.Add(draw(f).Text())
	f.Add("slipway")
	f.Add(strings.Repeat("a", letters.EncodedLen(codeBytes)))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCode(text)
		if err == nil && c.Text() != strings.ToLower(strings.TrimSpace(text)) {
			t.Errorf("%q is read as %q", text, c.Text())
		}
		if _, err := ParseAddresses(text); err != nil && !inventory.IsKind(err, inventory.Invalid) {
			t.Error(err)
		}
	})
}
