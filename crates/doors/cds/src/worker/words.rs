//! Words for worker names: friendly adjectives and people of science.

#[rustfmt::skip]
/// All of them kind: the names are seen by those whose job failed.
pub(super) const ADJECTIVES: [&str; 99] = [
    "able", "agile", "airy", "alert", "amber", "ample", "apt", "avid", "balmy", "bold", "brave",
    "breezy", "brief", "bright", "brisk", "calm", "candid", "chatty", "cheery", "civil", "clever",
    "cosy", "crisp", "curious", "dapper", "daring", "deft", "direct", "dreamy", "eager",
    "earnest", "easy", "elated", "fair", "famous", "fancy", "fine", "firm", "fleet", "fluent",
    "fond", "frank", "free", "fresh", "frosty", "genial", "gentle", "gifted", "glad", "golden",
    "grand", "happy", "hardy", "honest", "humble", "jolly", "jovial", "keen", "kind", "light",
    "lively", "loyal", "lucid", "lucky", "merry", "mild", "modest", "neat", "nimble", "noble",
    "patient", "placid", "polite", "prime", "proud", "prudent", "quick", "quiet", "rapid",
    "ready", "rosy", "serene", "sharp", "shy", "silent", "sincere", "sleek", "smart", "smooth",
    "sober", "steady", "sunny", "swift", "tidy", "vivid", "warm", "wise", "witty", "zesty",
];

#[rustfmt::skip]
/// In their plain ASCII form.
pub(super) const SURNAMES: [&str; 238] = [
    "abel", "agnesi", "airy", "allen", "almeida", "alvarez", "ampere", "anning", "apgar",
    "appleton", "archimedes", "aryabhata", "askey", "atanasoff", "avogadro", "babbage", "bacon",
    "baekeland", "ball", "banach", "banks", "banu", "bardeen", "bartik", "bassi", "bateson",
    "becquerel", "bell", "bernoulli", "bessel", "bhabha", "binet", "blackwell", "blodgett",
    "bohr", "boltzmann", "bolyai", "boole", "bose", "bragg", "brahe", "braille", "brattain",
    "bunsen", "burnell", "cantor", "carnot", "carson", "cartwright", "cauchy", "cavendish",
    "celsius", "chadwick", "chandra", "chern", "church", "clarke", "cori", "coulomb", "cray",
    "crick", "curie", "dalton", "darwin", "davy", "dedekind", "descartes", "dewar", "dijkstra",
    "dirac", "doppler", "easley", "eckert", "eddington", "edison", "ehrlich", "einstein", "elion",
    "engelbart", "euclid", "euler", "faraday", "fermat", "fermi", "feynman", "fibonacci",
    "fischer", "fizeau", "fleming", "florey", "fock", "foucault", "fourier", "franklin",
    "fraunhofer", "frege", "fresnel", "galileo", "galois", "galvani", "gamow", "gauss", "germain",
    "gibbs", "goedel", "goldberg", "goldwasser", "goodall", "gould", "grace", "green", "haber",
    "hadamard", "hahn", "hall", "halley", "hamilton", "hamming", "harvey", "heaviside",
    "heisenberg", "helmholtz", "henry", "hermann", "herschel", "hertz", "hess", "hilbert",
    "hodgkin", "hooke", "hopper", "hoyle", "hubble", "humboldt", "huygens", "hypatia", "jackson",
    "jacobi", "jemison", "jenner", "joliot", "joule", "kalman", "kapitsa", "kare", "karle",
    "keldysh", "keller", "kelvin", "kepler", "khayyam", "khorana", "kilby", "kirchhoff", "klein",
    "knuth", "koch", "kolmogorov", "kovalevska", "lagrange", "lalande", "lamarr", "landau",
    "laplace", "lavoisier", "leakey", "leavitt", "lebesgue", "leeuwenhoek", "legendre", "leibniz",
    "lenz", "levi", "lewis", "lichterman", "liskov", "lister", "lorentz", "lovelace", "lumiere",
    "lyell", "mach", "marconi", "margulis", "markov", "maxwell", "mayer", "mccarthy",
    "mcclintock", "mclean", "meitner", "mendel", "mendeleev", "mercator", "michelson", "milstein",
    "minkowski", "mirzakhani", "moebius", "moore", "morse", "moser", "nash", "neumann", "newton",
    "nightingale", "nobel", "noether", "nyquist", "ohm", "onsager", "oppenheimer", "pascal",
    "pasteur", "pauli", "pauling", "payne", "peano", "penrose", "perlman", "pike", "planck",
    "poincare", "poisson", "pontryagin", "ptolemy", "raman", "ramanujan", "rayleigh", "ride",
    "riemann", "ritchie", "roentgen", "rubin", "rutherford", "sagan", "salk", "sanger",
];
