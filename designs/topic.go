package designs

// A Topic is the coupon's topic of one partition.
type Topic struct{}
