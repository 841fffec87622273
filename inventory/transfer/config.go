package transfer

import (
	"net/netip"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// blockField is a text of several lines. A diff counts them; it shows the text of no file.
func blockField[T any](name string, at func(*T) *string) field[T] {
	f := textField(name, at, nil)
	f.kind = asBlock
	return f
}

// shown is what a diff says of a field's texts.
func (f field[T]) shown(texts []string) string {
	if f.kind != asBlock || len(texts) == 0 {
		return strings.Join(texts, " ")
	}
	n := strings.Count(strings.TrimSuffix(texts[0], "\n"), "\n") + 1
	if n == 1 {
		return "1 line"
	}
	return strconv.Itoa(n) + " lines"
}

func named(noun string) func(string) error {
	return func(s string) error { return inventory.CheckName(noun, s) }
}

func profileFields() []field[inventory.Profile] {
	type profile = inventory.Profile
	return []field[profile]{
		keeping(textField("name", func(p *profile) *string { return &p.Name }, named("profile"))),
		keeping(textField("image", func(p *profile) *string { return &p.Image }, named("image"))),
		textField("selector", func(p *profile) *string { return &p.Selector }, nil),
		numberField("priority", func(p *profile) *int { return &p.Priority }),
		textsField("kernelArgs", func(p *profile) *[]string { return &p.KernelArgs }),
		mapField("parameters", func(p *profile) *map[string]string { return &p.Parameters }),
		textField("extends", func(p *profile) *string { return &p.Extends }, named("profile")),
		textField("format", func(p *profile) *string { return &p.Format }, plain("format")),
		textsField("accepts", func(p *profile) *[]string { return &p.Accepts }),
		flagField("isolated", func(p *profile) *bool { return &p.Isolated }),
		blockField("config", func(p *profile) *string { return &p.Config }),
		{name: "documentFormat", kind: asText, get: getDocumentFormat, set: setDocumentFormat},
		{name: "document", kind: asBlock, get: getDocument, set: setDocument},
	}
}

func getDocumentFormat(p *inventory.Profile) []string {
	if p.Document == nil {
		return nil
	}
	return one(string(p.Document.Format))
}

func setDocumentFormat(p *inventory.Profile, texts []string) error {
	setPart(p, func(d *inventory.Document) { d.Format = inventory.DocumentFormat(only(texts)) })
	return nil
}

func getDocument(p *inventory.Profile) []string {
	if p.Document == nil {
		return nil
	}
	return one(p.Document.Text)
}

func setDocument(p *inventory.Profile, texts []string) error {
	setPart(p, func(d *inventory.Document) { d.Text = only(texts) })
	return nil
}

// setPart changes a copy of the document, which is gone when nothing is left of it.
func setPart(p *inventory.Profile, change func(*inventory.Document)) {
	var d inventory.Document
	if p.Document != nil {
		d = *p.Document
	}
	change(&d)
	if p.Document = &d; d.Format == "" && d.Text == "" {
		p.Document = nil
	}
}

// layerFields call a host's layer by the name of the host: its id means nothing elsewhere.
func layerFields() []field[inventory.Layer] {
	type layer = inventory.Layer
	return []field[layer]{
		{
			name: "layer", kind: asText, keeps: true,
			get: func(l *layer) []string {
				if l.Scope == "" {
					return nil
				}
				return one(l.Key())
			},
			set: func(l *layer, texts []string) (err error) {
				l.Scope, l.Name, err = inventory.ParseLayerKey(only(texts))
				return err
			},
		},
		blockField("config", func(l *layer) *string { return &l.Config }),
	}
}

func targetFields() []field[inventory.JoinTarget] {
	type target = inventory.JoinTarget
	return []field[target]{
		keeping(textField("name", func(t *target) *string { return &t.Name }, named("target"))),
		keeping(textField("endpoint", func(t *target) *string { return &t.Endpoint }, plain("endpoint"))),
		textField("kubernetes", func(t *target) *string { return &t.Kubernetes }, plain("kubernetes")),
		textField("kubeconfig", func(t *target) *string { return &t.Kubeconfig }, named("secret")),
		textField("token", func(t *target) *string { return &t.Token }, named("secret")),
		textField("pki", func(t *target) *string { return &t.PKI }, named("secret")),
		textField("certificateKey", func(t *target) *string { return &t.CertificateKey }, named("secret")),
		parsedField("tokenFor", func(t *target) *inventory.Duration { return &t.TokenFor }, parseDuration, writeDuration),
		parsedField("vip", func(t *target) *netip.Addr { return &t.VIP }, parseAnyAddr, writeAddr),
		textField("vipInterface", func(t *target) *string { return &t.VIPInterface }, plain("vipInterface")),
		textField("vipImage", func(t *target) *string { return &t.VIPImage }, plain("vipImage")),
		textField("podCIDR", func(t *target) *string { return &t.PodCIDR }, plain("podCIDR")),
		textField("serviceCIDR", func(t *target) *string { return &t.ServiceCIDR }, plain("serviceCIDR")),
		numberField("workerParallelism", func(t *target) *int { return &t.WorkerParallelism }),
		consumersField(func(t *target) *inventory.Consumers { return &t.Consumers }),
		blockField("ca", func(t *target) *string { return &t.CA }),
	}
}

func parseAnyAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, inventory.Errorf(inventory.Invalid, "%q is not an address", clip(s))
	}
	return a, nil
}

// secretFields are names and words only: no file ever holds a value.
func secretFields() []field[inventory.Secret] {
	type secret = inventory.Secret
	return []field[secret]{
		keeping(textField("name", func(s *secret) *string { return &s.Name }, named("secret"))),
		textField("about", func(s *secret) *string { return &s.About }, plain("about")),
		consumersField(func(s *secret) *inventory.Consumers { return &s.Consumers }),
	}
}

// consumersField is whom a secret or join target is for: pool:web, profile:debian.
func consumersField[T any](at func(*T) *inventory.Consumers) field[T] {
	return field[T]{
		name: "consumers", kind: asList,
		get: func(v *T) []string { return at(v).Texts() },
		set: func(v *T, texts []string) (err error) {
			*at(v), err = inventory.ParseConsumers(texts)
			return err
		},
	}
}
