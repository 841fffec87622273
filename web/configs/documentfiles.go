package configs

import (
	"errors"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
)

// takeFiles makes the local files that came with the document of a profile part of its text.
func takeFiles(p *inventory.Profile) error {
	if p.Document == nil || len(p.Document.Files) == 0 {
		return nil
	}
	d := *p.Document
	if d.Format != inventory.DocButane {
		return inventory.Errorf(inventory.Invalid, "only a Butane document names local files").At("document.files").WithHint("leave the files out")
	}
	text, err := ignition.WithFiles(d.Text, d.Files)
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return inventory.Errorf(said.Kind, "document: %s", said.Msg).At("document.files").WithHint("%s", said.Hint)
	}
	d.Text, d.Files = text, nil
	p.Document = &d
	return err
}
