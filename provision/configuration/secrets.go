package configuration

// Secrets opens and seals what may not be stored in clear.
type Secrets interface {
	Open(name string, sealed []byte) ([]byte, error)
}
