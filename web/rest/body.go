package rest

import (
	"bytes"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// strictJSON reads bodies as JSON that is UTF-8. The decoder of Go puts U+FFFD where a byte is none, so that a document in
// Latin-1 would be stored, and served, as something that nobody wrote.
var strictJSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, v any) error {
		if err := TextFault(data); err != nil {
			return err
		}
		return huma.DefaultJSONFormat.Unmarshal(data, v)
	},
}

// TextFault says where a body is no text, with the line and column.
func TextFault(data []byte) error {
	if !utf8.Valid(data) || bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		line, column, what, hint := machineconfig.TextFault(string(data))
		return fmt.Errorf("line %d, column %d of the body %s: %s", line, column, what, hint)
	}
	if at := loneSurrogate(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		column := 1 + utf8.RuneCount(data[bytes.LastIndexByte(data[:at], '\n')+1:at])
		return fmt.Errorf("line %d, column %d of the body has %s, which is half a character", line, column, data[at:at+6])
	}
	return nil
}

// loneSurrogate returns where an escape such as \\ud800 stands that no other half follows, -1 for nowhere.
func loneSurrogate(data []byte) int {
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r, ok := escaped(data[i:])
		if !ok {
			i++ // another escape, such as two backslashes
			continue
		}
		switch low, isPair := escaped(data[i+6:]); {
		case r >= 0xdc00 && r < 0xe000, r >= 0xd800 && r < 0xdc00 && (!isPair || low < 0xdc00 || low > 0xdfff):
			return i
		case r >= 0xd800 && r < 0xdc00:
			i += 11
		default:
			i += 5
		}
	}
	return -1
}

// escaped reads \\uXXXX at the start of data.
func escaped(data []byte) (r int, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	for _, c := range data[2:6] {
		digit := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if digit < 0 {
			return 0, false
		}
		r = r<<4 | digit
	}
	return r, true
}

// Text is a body that is not JSON.
type Text struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// CheckURL refuses what is neither empty nor the address of a file on a web server.
func CheckURL(what, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return inventory.Errorf(inventory.Invalid, "%s is not an http(s) address", what).WithHint("write it as http://10.0.0.1/image.iso, without user and password")
	}
	return nil
}

// Set takes over a value that was given.
func Set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// EventText returns a text out of an event's data.
func EventText(e inventory.Event, key string) string {
	m, _ := e.Data.(map[string]any)
	text, _ := m[key].(string)
	return text
}
