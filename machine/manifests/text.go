package manifests

// Text returns the objects of a profile as one YAML stream, for kubectl apply.
func Text(p Profile) ([]byte, error) {
	objs, err := Objects(p)
	if err != nil {
		return nil, err
	}
	return encode(objs)
}
