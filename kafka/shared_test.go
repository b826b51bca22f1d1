package kafka

// RealKafka is the shared broker, for the tests outside of the package.
var RealKafka = realKafka
