// Package pointer makes JSON pointers (RFC 6901), which name the places of a configuration: /network/interfaces/eno1/mtu. Items of
// lists are named by their key. It never reads a document.
package pointer

import (
	"fmt"
	"strings"
)

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// Of makes a JSON pointer of keys.
func Of(keys ...any) (p string) {
	for _, k := range keys {
		p = Add(p, fmt.Sprint(k))
	}
	return p
}

// Add appends a key to a JSON pointer.
func Add(path, key string) string {
	if strings.ContainsAny(key, "~/") {
		key = escape.Replace(key)
	}
	return path + "/" + key
}

// Parent returns the pointer to what holds the value, "" for the whole document.
func Parent(p string) string { return p[:max(strings.LastIndexByte(p, '/'), 0)] }
