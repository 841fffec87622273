package files

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/transfer"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type exportInput struct {
	Noun   nounOfFile `query:"noun" required:"true" doc:"Nouns to write; all but hosts, subnets and reservations in YAML only. Of secrets only the names are written"`
	Format string     `query:"format" default:"yaml" enum:"csv,yaml"`
}

// nounOfFile is a noun that a file may have, or all.
type nounOfFile string

// Schema implements huma.SchemaProvider: package transfer knows the nouns.
func (nounOfFile) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, name := range append(transfer.Nouns(), "all") {
		s.Enum = append(s.Enum, name)
	}
	return s
}

type fileInput struct {
	DryRun  bool     `query:"dryRun" doc:"Check the file and show what it would change, but change nothing"`
	Format  string   `query:"format" default:"yaml" enum:"csv,yaml"`
	Preset  string   `query:"preset" enum:",netbox,maas,ansible,device42" doc:"Of a CSV file: the program whose export it is. Columns that mean nothing to us are left out, and named in the answer"`
	Map     []string `query:"map,explode" maxItems:"200" doc:"Of a CSV file: COLUMN=FIELD for a column with another heading, such as hostname=name, COLUMN=label:KEY, or COLUMN= to leave it out"`
	File    string   `query:"file" default:"input" doc:"Name of the file, for errors" maxLength:"255"`
	RawBody []byte   `contentType:"text/plain" doc:"The file: CSV of hosts, subnets or reservations by its header row, or YAML of any nouns"`
}

// addTransfer registers the export and import of files.
func (s *Server) addTransfer() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/transfer", ID: "export", Needs: inventory.Admin, Tag: "transfer", Plain: "text/plain", Within: time.Minute,
		Summary: "Write what the inventory holds as a file", About: "Imported again, the file changes nothing. It holds no image and no secret's value.",
	}, s.export)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/transfer", ID: "import-file", Needs: inventory.Admin, Tag: "transfer", Body: rest.BodyMax, Within: time.Minute,
		Summary: "Read hosts, subnets, reservations and what hosts become from a file", Errors: []int{http.StatusConflict},
		About: "All of it or nothing. Errors name the line. A row changes only what it gives; nothing is ever deleted.",
	}, s.importFile)
}

func (s *Server) export(req *rest.Request, in *exportInput) (*rest.Text, error) {
	current, err := rest.Read(req, s.rest.Store, transfer.Load)
	if err != nil {
		return nil, err
	}
	doc := transfer.Export(current)
	if in.Noun != "all" {
		doc = doc.Only(transfer.Noun(in.Noun))
	}
	var out bytes.Buffer
	switch {
	case in.Format == "yaml":
		err = transfer.WriteYAML(&out, doc)
	case in.Noun == "all":
		return nil, inventory.Errorf(inventory.Invalid, "a CSV file holds one noun").WithHint("name it, or ask for YAML")
	default:
		err = transfer.WriteCSV(&out, transfer.Noun(in.Noun), doc)
	}
	if err != nil {
		return nil, fmt.Errorf("write export: %w", err)
	}
	return &rest.Text{ContentType: "text/plain; charset=utf-8", Body: out.Bytes()}, nil
}

func (s *Server) importFile(req *rest.Request, in *fileInput) (*rest.One[wire.FileImport], error) {
	name := inventory.Clean(in.File, 255)
	read := transfer.ReadYAML
	if in.Format == "csv" {
		read = func(name string, r io.Reader) (transfer.Document, error) {
			return transfer.ReadSheet(name, r, transfer.Sheet{Preset: in.Preset, Map: in.Map})
		}
	} else if in.Preset != "" || len(in.Map) > 0 {
		return nil, inventory.Errorf(inventory.Invalid, "presets and mappings are of the columns of a CSV file").WithHint("leave them out for YAML, or say format csv")
	}
	doc, err := read(name, bytes.NewReader(in.RawBody))
	if err != nil {
		return nil, err
	}
	var d transfer.Diff
	err = s.rest.Write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		now := s.rest.Now()
		if d, err = transfer.Apply(tx, doc, now, s.cfg.NewHostID); err != nil {
			return err
		}
		for _, c := range d.Changes {
			if err := readable(c); err != nil {
				return err
			}
			if err := s.imported(req, tx, c, now); err != nil {
				return err
			}
			if c.Noun == transfer.Hosts && c.Op != transfer.OpUnchanged && s.cfg.Engine != nil {
				if err := s.cfg.Engine.HoldHost(tx, c.HostID()); err != nil {
					return err
				}
			}
		}
		rest.Edited(req, "file", name, "", nil, changesOf(d), 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := wire.FileImport{IsDryRun: in.DryRun, Changes: changesOf(d), UnchangedN: d.CountN(transfer.OpUnchanged), Ignored: doc.Ignored}
	return &rest.One[wire.FileImport]{Body: out}, nil
}

// changesOf returns what is new or different.
func changesOf(d transfer.Diff) []transfer.Change {
	out := []transfer.Change{}
	for _, c := range d.Changes {
		if c.Op != transfer.OpUnchanged {
			out = append(out, c)
		}
	}
	return out
}

// readable refuses configurations that cannot be read. What hosts make of them shows in their previews: an import may
// bring the half of it that the other half needs.
func readable(c transfer.Change) error {
	var text, origin string
	switch {
	case c.Op == transfer.OpUnchanged:
		return nil
	case c.Profile() != nil:
		text, origin = c.Profile().Config, "profile "+c.Name
	case c.Layer() != nil:
		text, origin = c.Layer().Config, "layer "+c.Name
	}
	_, findings := layer.Parse(text, origin)
	if !findings.HasErrors() {
		return nil
	}
	said := inventory.Errorf(inventory.Invalid, "%s cannot be read: %s", origin, inventory.MessageOf(findings.Err())).
		WithHint("nothing was changed; correct the file and import it again")
	return &rest.FindingsError{Err: said, Findings: findings}
}

// imported adds the event of one change of an import.
func (s *Server) imported(req *rest.Request, tx inventory.Tx, c transfer.Change, now time.Time) error {
	if c.Op == transfer.OpUnchanged {
		return nil
	}
	singular := c.Noun.Singular()
	e := inventory.Event{
		At: now, Kind: inventory.EventChanged, Subject: singular + "/" + c.Name,
		Detail: fmt.Sprintf("%s %s imported (%s) by %s", singular, c.Name, c.Op, req.By()),
	}
	if c.Noun == transfer.Hosts {
		e.Kind, e.Subject, e.HostID = inventory.EventHostChanged, "", c.HostID()
	}
	return tx.AddEvent(&e)
}
