package appliance

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/configs"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/transfer"
	"slipway.dev/slipway/web/client"
)

// The programs whose exports are read, and how the names of workbooks end.
var (
	presets   = []string{"netbox", "maas", "ansible", "device42"}
	workbooks = []string{".xlsx", ".xlsm", ".xls", ".ods"}
)

// ImportCommand is slipway import.
type ImportCommand struct {
	File   string   `arg:"" help:"CSV or YAML; - is standard input."`
	Format string   `help:"csv or yaml (default: by the file's name)." placeholder:"FORMAT"`
	Preset string   `help:"Program that wrote the CSV file: netbox, maas, ansible or device42." placeholder:"PROGRAM"`
	Map    []string `help:"Field of a column that has another heading, such as hostname=name, COLUMN=label:KEY, or COLUMN= to leave it out; repeat for more." placeholder:"COLUMN=FIELD" sep:"none"`
	DryRun bool     `help:"Only show what would change."`
}

// Run imports a file: all of it or nothing.
func (c *ImportCommand) Run(s *cli.Session, api *client.Client) error {
	format := cmp.Or(c.Format, formatOf(c.File))
	if slices.Contains(workbooks, filepath.Ext(strings.ToLower(c.File))) && c.Format == "" {
		return cli.Usage("save the sheet as CSV", "%s is a workbook of a spreadsheet program, not a CSV file", c.File)
	}
	if c.Preset != "" && !slices.Contains(presets, c.Preset) {
		return cli.Usage("use one of "+strings.Join(presets, ", "), "--preset %q is not known", c.Preset)
	}
	if format != "csv" && format != "yaml" {
		return cli.Usage("say it with --format csv or --format yaml", "%s does not tell whether it is CSV or YAML", c.File)
	}
	in := s.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the file: " + err.Error()}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	content := bufio.NewReader(in)
	if _, err := content.Peek(1); errors.Is(err, io.EOF) {
		return inventory.Errorf(inventory.Invalid, "%s is empty", c.File).WithHint("save it again; nothing was changed")
	}
	out, err := api.ImportFile(s.Ctx, format, filepath.Base(c.File), content, client.Sheet{Preset: c.Preset, Map: c.Map}, c.DryRun)
	if err != nil {
		return configs.InFiles(s, err, nil)
	}
	if s.Globals.Output != "table" {
		return s.Show(out, nil)
	}
	var d transfer.Diff
	for _, change := range out.Changes {
		x := transfer.Change{Noun: transfer.Noun(change.Noun), Name: change.Name, Op: transfer.Op(change.Op)}
		for _, f := range change.Fields {
			x.Fields = append(x.Fields, transfer.FieldChange(f))
		}
		d.Changes = append(d.Changes, x)
	}
	d.Changes = append(d.Changes, unchanged(out.UnchangedN)...)
	if _, err := io.WriteString(s.Out, cli.PlainLines(d.String())); err != nil {
		return err
	}
	if len(out.Ignored) > 0 {
		s.Say("columns left out: %s", strings.Join(out.Ignored, ", "))
	}
	if out.IsDryRun {
		s.Say("this was a dry run: nothing was changed")
	}
	return nil
}

func unchanged(n int) (list []transfer.Change) {
	for range n {
		list = append(list, transfer.Change{Op: transfer.OpUnchanged})
	}
	return list
}

func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv", ".tsv":
		return "csv"
	case ".yaml", ".yml":
		return "yaml"
	}
	return ""
}

// ExportCommand is slipway export.
type ExportCommand struct {
	Noun   string `arg:"" enum:"${nouns},all" help:"One of ${nouns}, or all. CSV is for hosts, subnets and reservations. Of secrets only the names are written."`
	Format string `enum:"csv,yaml" default:"yaml" help:"csv or yaml."`
}

// Run writes the file to standard output.
func (c *ExportCommand) Run(s *cli.Session, api *client.Client) error {
	return api.Export(s.Ctx, c.Noun, c.Format, s.Out)
}
