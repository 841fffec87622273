package delivery

import (
	"slices"
	"strings"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// delivery is a request for a document with all that is needed to answer it.
type delivery struct {
	pxe.ConfigRequest
	session   inventory.BootSession
	host      inventory.Host
	rendering inventory.Rendering
	docs      []inventory.RenderedDocument // those asked for
	isolated  bool                         // nothing guards its secrets
	neighbour inventory.MAC                // who uses Source on our own network, "" when the kernel does not know
	isOwn     bool                         // it comes from an address that the configuration gives the host
	secrets   []string                     // names of what the documents hold
}

func (d *delivery) hasSecret() bool {
	return slices.ContainsFunc(d.docs, func(r inventory.RenderedDocument) bool { return r.IsSecret })
}

// withSecrets names the secrets in the documents, for the timeline.
func (d *delivery) withSecrets() string {
	if len(d.secrets) == 0 {
		return ""
	}
	return " with " + strings.Join(d.secrets, ", ")
}

// told is what the event of a delivery says for programs.
func (d *delivery) told(size int) map[string]any {
	data := map[string]any{"document": d.Name, "bytes": size, "digest": d.rendering.Digest, "source": d.Source, "agent": d.Agent}
	if len(d.secrets) > 0 {
		data["secrets"] = d.secrets
	}
	return data
}

func (d *delivery) names() string {
	var names []string
	for _, doc := range d.rendering.Documents {
		names = append(names, doc.Name)
	}
	return strings.Join(names, "\n")
}

// readable holds back an Ignition configuration from a machine that says it cannot read that version: it would refuse
// it for ever.
func (d *delivery) readable() error {
	if d.rendering.Format != "ignition" || d.Accept == "" || d.Name == pxe.ConfigArchive {
		return nil
	}
	reads, ok := ignition.Negotiate(d.Accept)
	needs := ignition.SpecOf([]byte(d.docs[0].Text))
	if !ok || needs == "" || ignition.CanRead(reads, needs) {
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "the configuration needs Ignition spec %s, and this image reads %s", needs, reads).
		WithHint("import the image with ignition version %s, or take out of profile %s what needs more", reads, d.rendering.Profile)
}
