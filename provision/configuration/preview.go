package configuration

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/pxe"
)

// Preview is what a host would be given to become, as people may see it: secrets are shown by their references.
type Preview struct {
	Host     string           `json:"host"`
	Profile  string           `json:"profile,omitempty"`
	Revision int              `json:"revision,omitempty"` // of the profile; 0 for a draft
	Image    string           `json:"image,omitempty"`
	OS       string           `json:"os,omitempty"`
	Release  string           `json:"release,omitempty"`
	Format   string           `json:"format,omitempty"` // of the provisioner; "" when nothing is rendered
	Tool     string           `json:"tool,omitempty"`   // version of what reads it
	Digest   inventory.Digest `json:"digest,omitempty"` // of the rendering; "" with errors
	// Documents are redacted.
	Documents []inventory.RenderedDocument `json:"documents"`
	Args      []string                     `json:"args,omitempty"`
	Findings  machineconfig.Report         `json:"findings"`
	// Provenance says which layer set each value: a path into the configuration to the layer and its line.
	Provenance map[string]string `json:"provenance,omitempty"`
	// Config is the neutral configuration that the documents come from, line by line.
	Config []machineconfig.Line `json:"config,omitempty"`
	// References are the secrets and other late values that it needs.
	References []string `json:"references,omitempty"`
	// Since is the digest of what the host was given last, and Diff what differs from that, as unified diffs; "" when
	// nothing does.
	Since inventory.Digest `json:"since,omitempty"`
	Diff  string           `json:"diff,omitempty"`
}

// Preview returns what the host would be given now, or with a draft of a profile. It changes nothing.
func (c *Configurer) Preview(ctx context.Context, id inventory.HostID, draft *inventory.Profile) (v Preview, err error) {
	err = c.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		p, err := c.planWith(tx, &h, draft)
		if err != nil {
			return err
		}
		if p.Problem != nil {
			return p.Problem
		}
		v, err = c.preview(tx, &h, p)
		return err
	})
	return v, err
}

// planWith is the plan of a host, with the draft as its profile if there is one.
func (c *Configurer) planWith(tx inventory.Tx, h *inventory.Host, draft *inventory.Profile) (pxe.Plan, error) {
	if draft == nil {
		return c.cfg.Plan(tx, h, "")
	}
	i, err := tx.Images().Find(draft.Image)
	return pxe.Plan{Profile: draft, Image: &i}, err
}

func (c *Configurer) preview(tx inventory.Tx, h *inventory.Host, p pxe.Plan) (Preview, error) {
	v := Preview{
		Host: h.Name, Profile: p.Profile.Name, Revision: p.Profile.Revision, Image: p.Image.Name, OS: p.Image.OS, Release: p.Image.Release,
		Documents: []inventory.RenderedDocument{}, Findings: machineconfig.Report{},
	}
	in, err := c.wanted(tx, h, p, BootMAC(h))
	if err != nil || in == nil {
		return v, err
	}
	s, err := subjectOn(tx, h)
	if err != nil {
		return v, err
	}
	b, err := c.book(tx, true)
	if err != nil {
		return v, err
	}
	in.Address = b.Give(s)
	r := c.cfg.Renderer.Host(*in)
	v.Format, v.Tool, v.Digest, v.Args = r.Format, r.Target.Tool, r.Digest, r.Args
	v.Findings, v.References = append(v.Findings, r.Findings...), r.References
	v.Documents = append(v.Documents, redacted(r.Documents)...)
	if r.Config != nil {
		clashes, err := clashesOf(b, s, address.Of(r.Config, s))
		if err != nil {
			return v, err
		}
		v.Findings = append(v.Findings, clashes...)
		v.Provenance = r.Config.Provenance
		if v.Config, err = r.Config.Lines(); err != nil {
			return v, err
		}
	}
	last, err := tx.ListRenderings(h.ID, 1)
	if err != nil || len(last) == 0 {
		return v, err
	}
	v.Since = last[0].Digest
	if v.Digest != "" && v.Since != v.Digest {
		v.Diff = diff(redacted(last[0].Documents), v.Documents)
	}
	return v, nil
}

// redacted shows late values by their references.
func redacted(docs []inventory.RenderedDocument) []inventory.RenderedDocument {
	out := slices.Clone(docs)
	for i := range out {
		out[i].Text = string(late.Redact([]byte(out[i].Text)))
	}
	return out
}

// Redacted returns a rendering as people may see it.
func Redacted(r inventory.Rendering) inventory.Rendering {
	r.Documents = redacted(r.Documents)
	return r
}

// diff compares two sets of documents by name, as unified diffs.
func diff(before, after []inventory.RenderedDocument) string {
	texts := map[string][2]string{}
	var names []string
	for i, docs := range [][]inventory.RenderedDocument{before, after} {
		for _, d := range docs {
			t, seen := texts[d.Name]
			if !seen {
				names = append(names, d.Name)
			}
			t[i] = Readable(d)
			texts[d.Name] = t
		}
	}
	var b strings.Builder
	for _, name := range names {
		t := texts[name]
		if t[0] == t[1] {
			continue
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(t[0]), B: difflib.SplitLines(t[1]), FromFile: name + " (before)", ToFile: name + " (after)", Context: 3,
		})
		if err == nil {
			b.WriteString(text)
		}
	}
	return b.String()
}

// Readable lays JSON out in lines, so that a diff shows what changed and not all of it.
func Readable(d inventory.RenderedDocument) string {
	var b bytes.Buffer
	if strings.Contains(d.ContentType, "json") && json.Indent(&b, []byte(d.Text), "", "  ") == nil {
		return b.String() + "\n"
	}
	return d.Text
}
