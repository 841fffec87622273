package appliance

import (
	"reflect"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory/transfer"
)

// A noun that a file may have can be exported by its name.
func TestEachNounCanBeExported(t *testing.T) {
	f, _ := reflect.TypeFor[ExportCommand]().FieldByName("Noun")
	if got, want := f.Tag.Get("enum"), strings.Join(transfer.Nouns(), ",")+",all"; got != want {
		t.Errorf("slipway export takes %s; files have %s", got, want)
	}
}
