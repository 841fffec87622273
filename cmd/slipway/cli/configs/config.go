// Package configs owns the commands for what machines become: slipway profile, layer, secret, render, diff and explain. It decides
// nothing: it calls the REST API.
package configs

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/client"
)

// origins says which of the user's files a source in findings is: the key is what stands before the line.
type origins map[string]string

// place turns "profile web:12:3" into "web.yaml:12:3" where the file is the user's own.
func (o origins) place(source string) string {
	for name, file := range o {
		if rest, ok := strings.CutPrefix(source, name+":"); ok && file != "" {
			return file + ":" + rest
		}
	}
	return source
}

// findingLines writes findings, one a line, as compilers do.
func findingLines(w io.Writer, findings []machineconfig.Finding, o origins) {
	for _, f := range findings {
		line := string(f.Severity) + ": "
		if source := o.place(f.Source); source != "" {
			line = source + ": " + line
		}
		if f.Path != "" {
			line += f.Path + ": "
		}
		line += f.Message
		if f.Hint != "" {
			line += " (" + f.Hint + ")"
		}
		fmt.Fprintln(w, cli.Plain(line))
	}
}

// InFiles writes what an error finds wrong with the user's files, and returns an error that needs no more words.
func InFiles(s *cli.Session, err error, o origins) error {
	var found client.Findings
	if !errors.As(err, &found) {
		return err
	}
	findingLines(s.Err, found, o)
	cli.Complain(s.Err, err)
	return cli.ErrSaid
}

// configFlags are what a profile makes of its hosts; nil is not given.
type configFlags struct {
	Config         *string  `help:"File with its layer of configuration, in YAML; - is standard input, empty takes it away." placeholder:"FILE"`
	Document       *string  `help:"File with a configuration in a tool's own words; empty takes it away." placeholder:"FILE"`
	DocumentFiles  string   `help:"Folder of the local files that a Butane document names; their content becomes part of it." placeholder:"FOLDER"`
	DocumentFormat *string  `help:"Format of the document: butane, ignition, cloud-config, autoinstall, kickstart, preseed or talos (default: by the file's name)." placeholder:"FORMAT"`
	Format         *string  `help:"Which of the image's formats to use; empty takes its first." placeholder:"FORMAT"`
	Extends        *string  `help:"Profile whose configuration this one builds upon; empty is none." placeholder:"NAME"`
	Accept         []string `help:"Path whose loss in the format is accepted, such as /storage/lvm; repeat for more. On update they replace those there are." placeholder:"PATH" sep:"none"`
	Isolated       *bool    `negatable:"" help:"Only for a lab on a network of its own: give secrets to any machine that boots with the MAC of the host."`
}

// documentFormats are told by the ends of names.
var documentFormats = map[string]inventory.DocumentFormat{
	".bu": inventory.DocButane, ".butane": inventory.DocButane, ".ign": inventory.DocIgnition, ".ks": inventory.DocKickstart,
	".preseed": inventory.DocPreseed, ".seed": inventory.DocPreseed,
}

// configure reads the files into a profile, and says which they are.
func (f *configFlags) configure(s *cli.Session, p *inventory.Profile) (origins, error) {
	cli.Set(&p.Format, f.Format)
	cli.Set(&p.Extends, f.Extends)
	cli.Set(&p.Isolated, f.Isolated)
	o := origins{}
	if f.Accept != nil {
		p.Accepts = nil
		for _, path := range f.Accept {
			if path != "" {
				p.Accepts = append(p.Accepts, path)
			}
		}
	}
	if f.Config != nil {
		p.Config = ""
		if *f.Config != "" {
			var err error
			if p.Config, err = s.ReadText(*f.Config); err != nil {
				return nil, err
			}
			o["profile "+p.Name] = cli.FileName(*f.Config)
		}
	}
	if f.Document == nil {
		if f.DocumentFormat != nil && p.Document == nil {
			return nil, cli.Usage("give it with --document FILE", "there is no document to have a format")
		}
		if f.DocumentFormat != nil {
			p.Document = &inventory.Document{Format: inventory.DocumentFormat(*f.DocumentFormat), Text: p.Document.Text}
		}
		return o, nil
	}
	if *f.Document == "" {
		p.Document = nil
		return o, nil
	}
	format := documentFormats[filepath.Ext(*f.Document)]
	if f.DocumentFormat != nil {
		format = inventory.DocumentFormat(*f.DocumentFormat)
	}
	if format == "" {
		return nil, cli.Usage("say it with --document-format", "%s does not tell what kind of document it is", *f.Document)
	}
	text, err := s.ReadText(*f.Document)
	if err != nil {
		return nil, err
	}
	if f.DocumentFiles != "" {
		if text, err = cli.WithLocal(text, *f.Document, f.DocumentFiles, format); err != nil {
			return nil, err
		}
	}
	p.Document = &inventory.Document{Format: format, Text: text}
	o["document"] = cli.FileName(*f.Document)
	return o, nil
}

// showImpact says what an edit would do. What is wrong with it is a failure.
func showImpact(s *cli.Session, i configuration.Impact, o origins, withDiffs bool) error {
	if s.Globals.Output != "table" {
		if err := s.Show(i, nil); err != nil {
			return err
		}
	} else {
		findingLines(s.Err, i.Findings, o)
		fmt.Fprintf(s.Out, "this edit changes %s", countOf(i.ChangedN, i.HostN))
		if i.FailedN > 0 {
			fmt.Fprintf(s.Out, ", and %d could not be rendered", i.FailedN)
		}
		fmt.Fprintln(s.Out)
		for _, h := range i.Hosts {
			state := "changes"
			if h.Findings.HasErrors() {
				state = "fails"
			}
			fmt.Fprintf(s.Out, "%s: %s\n", cli.Plain(h.Host), state)
			if withDiffs && h.Diff != "" {
				fmt.Fprint(s.Out, cli.PlainLines(h.Diff))
			}
		}
	}
	if i.FailedN > 0 || i.Findings.HasErrors() {
		return cli.ErrSaid
	}
	return nil
}

func countOf(n, of int) string {
	switch {
	case of == 0:
		return "no host: none uses it"
	case of == 1:
		return fmt.Sprintf("%d of 1 host", n)
	}
	return fmt.Sprintf("%d of %d hosts", n, of)
}

// previewConfig shows what a save would change, in the thing and on its hosts.
func previewConfig(s *cli.Session, d client.Diff, err error, o origins) error {
	if err != nil {
		return InFiles(s, err, o)
	}
	for i := range d.Changes {
		for _, v := range []*any{&d.Changes[i].From, &d.Changes[i].To} {
			if text, ok := (*v).(string); ok && s.Globals.Output == "table" && strings.Contains(text, "\n") {
				*v = fmt.Sprintf("(%d lines)", strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1)
			}
		}
	}
	if err := s.Preview(d, nil); err != nil || d.Impact == nil || s.Globals.Output != "table" {
		return err
	}
	return showImpact(s, *d.Impact, o, true)
}
