package appliance

import (
	"slices"
	"strings"
)

// ownLicence is this program's.
const ownLicence = "Apache-2.0"

// noLicence marks modules that come without a text of one.
const noLicence = "none with it"

// licencesOf lists the modules in this program and in slipway-agent by their licences, as SPDX writes those: the texts that the
// modules come with say so, which TestEveryModuleHasItsLicence compares. The texts are not in this tree; the build of the web UI
// takes them along.
var licencesOf = map[string]string{
	"Apache-2.0": `
cel.dev/expr
github.com/aws/aws-sdk-go-v2
github.com/bougou/go-ipmi
github.com/coreos/go-oidc/v3
github.com/coreos/go-semver
github.com/coreos/go-systemd
github.com/coreos/go-systemd/v22
github.com/coreos/ign-converter
github.com/coreos/ignition
github.com/coreos/ignition/v2
github.com/coreos/vcontext
github.com/digitalocean/go-libvirt
github.com/docker/cli
github.com/go-jose/go-jose/v4
github.com/go-logr/logr
github.com/go-openapi/jsonpointer
github.com/go-openapi/jsonreference
github.com/go-openapi/swag
github.com/go-openapi/swag/cmdutils
github.com/go-openapi/swag/conv
github.com/go-openapi/swag/fileutils
github.com/go-openapi/swag/jsonutils
github.com/go-openapi/swag/loading
github.com/go-openapi/swag/mangling
github.com/go-openapi/swag/netutils
github.com/go-openapi/swag/pools
github.com/go-openapi/swag/stringutils
github.com/go-openapi/swag/typeutils
github.com/go-openapi/swag/yamlutils
github.com/google/btree
github.com/google/gnostic-models
github.com/google/go-containerregistry
github.com/google/go-tpm
github.com/google/renameio/v2
github.com/maruel/natural
github.com/moby/term
github.com/modern-go/concurrent
github.com/modern-go/reflect2
github.com/oklog/ulid/v2
github.com/opencontainers/go-digest
github.com/opencontainers/image-spec
github.com/pires/go-proxyproto
github.com/prometheus/client_golang
github.com/prometheus/client_model
github.com/prometheus/common
github.com/prometheus/procfs
github.com/sethvargo/go-retry
github.com/spf13/cobra
github.com/vishvananda/netlink
github.com/vishvananda/netns
go4.org
gomodules.xyz/jsonpatch/v2
google.golang.org/genproto/googleapis/api
google.golang.org/genproto/googleapis/rpc
k8s.io/api
k8s.io/apiextensions-apiserver
k8s.io/apimachinery
k8s.io/apiserver
k8s.io/cli-runtime
k8s.io/client-go
k8s.io/cluster-bootstrap
k8s.io/component-base
k8s.io/klog/v2
k8s.io/kube-openapi
k8s.io/kubectl
k8s.io/utils
sigs.k8s.io/cluster-api/api
sigs.k8s.io/controller-runtime
sigs.k8s.io/kustomize/api
sigs.k8s.io/kustomize/kyaml
sigs.k8s.io/randfill
sigs.k8s.io/structured-merge-diff/v6`,
	"Apache-2.0 AND BSD-3-Clause": `
github.com/google/cel-go
go.opentelemetry.io/otel
go.opentelemetry.io/otel/trace
sigs.k8s.io/json`,
	"Apache-2.0 AND BSD-3-Clause AND MIT": `
github.com/klauspost/compress
sigs.k8s.io/yaml`,
	"Apache-2.0 AND MIT": `
go.yaml.in/yaml/v2
go.yaml.in/yaml/v3
gopkg.in/yaml.v3`,
	"BSD-2-Clause": `
github.com/beevik/etree
github.com/russross/blackfriday/v2`,
	"BSD-3-Clause": `
github.com/ProtonMail/go-crypto
github.com/antlr4-go/antlr/v4
github.com/chai2010/gettext-go
github.com/clarketm/json
github.com/cloudflare/circl
github.com/coreos/go-json
github.com/evanphx/json-patch/v5
github.com/fsnotify/fsnotify
github.com/go-webauthn/webauthn
github.com/go-webauthn/x
github.com/google/uuid
github.com/gopacket/gopacket
github.com/insomniacslk/dhcp
github.com/liggitt/tabwriter
github.com/munnerz/goautoneg
github.com/pierrec/lz4/v4
github.com/pmezard/go-difflib
github.com/rogpeppe/go-internal
github.com/spf13/pflag
github.com/stmcginnis/gofish
github.com/u-root/uio
github.com/ulikunitz/xz
golang.org/x/crypto
golang.org/x/exp
golang.org/x/net
golang.org/x/oauth2
golang.org/x/sync
golang.org/x/sys
golang.org/x/term
golang.org/x/text
golang.org/x/time
google.golang.org/protobuf
gopkg.in/evanphx/json-patch.v4
gopkg.in/inf.v0
rsc.io/qr`,
	"ISC": `
github.com/davecgh/go-spew`,
	"MIT": `
github.com/MakeNowJust/heredoc
github.com/alecthomas/kong
github.com/beorn7/perks
github.com/blang/semver/v4
github.com/cespare/xxhash/v2
github.com/clipperhouse/uax29/v2
github.com/danielgtaylor/huma/v2
github.com/docker/docker-credential-helpers
github.com/emicklei/go-restful/v3
github.com/exponent-io/jsonpath
github.com/fatih/color
github.com/fxamacker/cbor/v2
github.com/go-errors/errors
github.com/go-viper/mapstructure/v2
github.com/golang-jwt/jwt/v5
github.com/jackc/pgpassfile
github.com/jackc/pgservicefile
github.com/jackc/pgx/v5
github.com/jackc/puddle/v2
github.com/json-iterator/go
github.com/kr/pretty
github.com/kr/text
github.com/labstack/echo/v4
github.com/labstack/echo/v5
github.com/labstack/gommon
github.com/mattn/go-colorable
github.com/mattn/go-isatty
github.com/mattn/go-runewidth
github.com/mattn/go-sqlite3
github.com/mdlayher/packet
github.com/mdlayher/socket
github.com/mfridman/interpolate
github.com/mitchellh/go-wordwrap
github.com/monochromegane/go-gitignore
github.com/olekukonko/errors
github.com/olekukonko/ll
github.com/olekukonko/tablewriter
github.com/peterbourgon/diskv
github.com/philhofer/fwd
github.com/pin/tftp/v3
github.com/pressly/goose/v3
github.com/rivo/uniseg
github.com/sirupsen/logrus
github.com/stretchr/testify
github.com/tinylib/msgp
github.com/valyala/bytebufferpool
github.com/valyala/fasttemplate
github.com/vincent-petithory/dataurl
github.com/x448/float16
github.com/xlab/treeprint
go.uber.org/multierr`,
	noLicence: `
github.com/ajeddeloh/go-json`,
}

// licenceOf returns the licence of a module, "" when nothing is known.
func licenceOf(module string) string {
	for licence, modules := range licencesOf {
		if slices.Contains(strings.Fields(modules), module) {
			return licence
		}
	}
	return ""
}
