// Reaction rates of hydrogen combustion at each point of a grid, as straight-line code. Constants
// are those of GRI-Mech 3.0, in its units (mol, cm, s, cal); the compiler converts them to SI
// units.
#define K(x) ((real)(x))
#define KELVIN(cal) ((cal) * (4.184 / 8.31446261815324)) // of 1 mol, divided by the gas constant
#define OF_TWO(a) ((a) * 1e-6)                           // cm^3/mol/s to m^3/mol/s
#define OF_THREE(a) ((a) * 1e-12)                        // cm^6/mol^2/s to m^6/mol^2/s

// a T^b exp(-E / R T), omitting factors of 1.
#define ARRHENIUS(a, b, cal) (K(a) * exp(K(b) * ln_T - K(KELVIN(cal)) * per_T))
#define ACTIVATED(a, cal) (K(a) * exp(K(-KELVIN(cal)) * per_T))
#define POWER(a, b) (K(a) * exp(K(b) * ln_T))

// Concentrations c_ in mol/m^3 (before the common factor), molar masses in g/mol.
#define CONCENTRATION(name, number, mass) real c_##name = fraction[number * n + i] * K(1 / (mass));

// Gibbs energy over R T from the NASA polynomials, below 1000 K and above.
#define GIBBS(a1, a2, a3, a4, a5, a6, a7)                                                          \
  (K(a1) * one_less_ln_T - T * (K(a2 / 2) + T * (K(a3 / 6) + T * (K(a4 / 12) + T * K(a5 / 20)))) + \
   K(a6) * per_T - K(a7))
#define SPECIES(name, below, above) const real g_##name = T < 1000 ? GIBBS below : GIBBS above;

// e_: exp(-Gibbs energy of formation over R T), from half H2 and half O2; i_: its inverse. Over a
// reaction they give the same products as the absolute energies, but energies of formation stay in
// the range of single precision.
#define FORMATION_FACTORS(name, formation)                                                                    \
  const real e_##name = exp((formation) - g_##name);                                               \
  const real i_##name = 1 / e_##name;

// a + b <=> c + d, and a + b + m <=> c + m: the net rate (forward minus reverse), added to the
// products and subtracted from the reactants.
#define R2(rate, a, b, c, d)                                                                       \
  {                                                                                                \
    const real net =                                                                               \
        (rate) * (c_##a * c_##b - c_##c * c_##d * ((e_##a * i_##c) * (e_##b * i_##d)));            \
    w_##a -= net;                                                                                  \
    w_##b -= net;                                                                                  \
    w_##c += net;                                                                                  \
    w_##d += net;                                                                                  \
  }
#define R3(rate, m, a, b, c)                                                                       \
  {                                                                                                \
    const real net =                                                                               \
        (rate) * (m) * (c_##a * c_##b - c_##c * ((e_##a * i_##c) * e_##b * standard));             \
    w_##a -= net;                                                                                  \
    w_##b -= net;                                                                                  \
    w_##c += net;                                                                                  \
  }

// Interpolates between `low` (third order) and `high` (second order) with Troe's formula, for 2 OH
// (+ M) <=> H2O2.
DEVICE real troe(real low, real high, real m, real T, real per_T) {
  const real per_decade = K(0.4342944819032518);
  const real reduced = low * m / high;
  const real centre = K(0.2654) * exp(K(-1 / 94.0) * T) + K(0.7346) * exp(K(-1 / 1756.0) * T) +
                      exp(K(-5182.0) * per_T);
  const real decades = per_decade * log(centre);
  const real shifted = per_decade * log(reduced) - K(0.4) - K(0.67) * decades;
  const real ratio = shifted / (K(0.75) - K(1.27) * decades - K(0.14) * shifted);
  return high * (reduced / (1 + reduced)) *
         exp(K(2.302585092994046) * (decades / (1 + ratio * ratio)));
}

// kg/m^3/s
#define PRODUCTION(name, number, mass) made[number * n + i] = w_##name * K((mass) * 1e-3);

KERNEL rates(GLOBAL const real* RESTRICT temperature, GLOBAL const real* RESTRICT pressure,
             GLOBAL const real* RESTRICT fraction, GLOBAL real* RESTRICT made, u64 n) {
  FOR_EACH_INDEX(i, n) {
    const real T = temperature[i];
    const real per_T = 1 / T;
    const real ln_T = log(T);
    const real one_less_ln_T = 1 - ln_T;
    const real total = pressure[i] * K(1 / 8.31446261815324) * per_T;
    const real standard = K(101325 / 8.31446261815324) * per_T; // at 1 atm

    CONCENTRATION(H2, 0, 2.016)
    CONCENTRATION(H, 1, 1.008)
    CONCENTRATION(O, 2, 15.999)
    CONCENTRATION(O2, 3, 31.998)
    CONCENTRATION(OH, 4, 17.007)
    CONCENTRATION(H2O, 5, 18.015)
    CONCENTRATION(HO2, 6, 33.006)
    CONCENTRATION(H2O2, 7, 34.014)
    CONCENTRATION(AR, 8, 39.95)
    CONCENTRATION(N2, 9, 28.014)

    const real scale =
        total / (c_H2 + c_H + c_O + c_O2 + c_OH + c_H2O + c_HO2 + c_H2O2 + c_AR + c_N2);
    c_H2 *= scale, c_H *= scale, c_O *= scale, c_O2 *= scale, c_OH *= scale, c_H2O *= scale;
    c_HO2 *= scale, c_H2O2 *= scale, c_AR *= scale, c_N2 *= scale;

    SPECIES(H2,
            (2.34433112, 7.98052075e-3, -1.9478151e-5, 2.01572094e-8, -7.37611761e-12, -917.935173,
             0.683010238),
            (3.3372792, -4.94024731e-5, 4.99456778e-7, -1.79566394e-10, 2.00255376e-14,
             -950.158922, -3.20502331))
    SPECIES(H,
            (2.5, 7.05332819e-13, -1.99591964e-15, 2.30081632e-18, -9.27732332e-22, 25473.6599,
             -0.446682853),
            (2.50000001, -2.30842973e-11, 1.61561948e-14, -4.73515235e-18, 4.98197357e-22,
             25473.6599, -0.446682914))
    SPECIES(O,
            (3.1682671, -3.27931884e-3, 6.64306396e-6, -6.12806624e-9, 2.11265971e-12, 29122.2592,
             2.05193346),
            (2.56942078, -8.59741137e-5, 4.19484589e-8, -1.00177799e-11, 1.22833691e-15,
             29217.5791, 4.78433864))
    SPECIES(O2,
            (3.78245636, -2.99673416e-3, 9.84730201e-6, -9.68129509e-9, 3.24372837e-12,
             -1063.94356, 3.65767573),
            (3.28253784, 1.48308754e-3, -7.57966669e-7, 2.09470555e-10, -2.16717794e-14,
             -1088.45772, 5.45323129))
    SPECIES(OH,
            (3.99201543, -2.40131752e-3, 4.61793841e-6, -3.88113333e-9, 1.3641147e-12, 3615.08056,
             -0.103925458),
            (3.09288767, 5.48429716e-4, 1.26505228e-7, -8.79461556e-11, 1.17412376e-14, 3858.657,
             4.4766961))
    SPECIES(H2O,
            (4.19864056, -2.0364341e-3, 6.52040211e-6, -5.48797062e-9, 1.77197817e-12, -30293.7267,
             -0.849032208),
            (3.03399249, 2.17691804e-3, -1.64072518e-7, -9.7041987e-11, 1.68200992e-14,
             -30004.2971, 4.9667701))
    SPECIES(HO2,
            (4.30179801, -4.74912051e-3, 2.11582891e-5, -2.42763894e-8, 9.29225124e-12, 294.80804,
             3.71666245),
            (4.0172109, 2.23982013e-3, -6.3365815e-7, 1.1424637e-10, -1.07908535e-14, 111.856713,
             3.78510215))
    SPECIES(H2O2,
            (4.27611269, -5.42822417e-4, 1.67335701e-5, -2.15770813e-8, 8.62454363e-12,
             -17702.5821, 3.43505074),
            (4.16500285, 4.90831694e-3, -1.90139225e-6, 3.71185986e-10, -2.87908305e-14,
             -17861.7877, 2.91615662))

    const real half_H2 = K(0.5) * g_H2;
    const real half_O2 = K(0.5) * g_O2;
    const real e_H2 = 1, i_H2 = 1, e_O2 = 1, i_O2 = 1;
    FORMATION_FACTORS(H, half_H2)
    FORMATION_FACTORS(O, half_O2)
    FORMATION_FACTORS(OH, half_H2 + half_O2)
    FORMATION_FACTORS(H2O, g_H2 + half_O2)
    FORMATION_FACTORS(HO2, half_H2 + g_O2)
    FORMATION_FACTORS(H2O2, g_H2 + g_O2)

    real w_H2 = 0, w_H = 0, w_O = 0, w_O2 = 0, w_OH = 0, w_H2O = 0, w_HO2 = 0, w_H2O2 = 0;
    R3(POWER(OF_THREE(1.2e17), -1.0), total + K(1.4) * c_H2 + K(14.4) * c_H2O - K(0.17) * c_AR, O,
       O, O2)
    R3(POWER(OF_THREE(5.0e17), -1.0), total + c_H2 + K(5.0) * c_H2O - K(0.3) * c_AR, O, H, OH)
    R2(ARRHENIUS(OF_TWO(3.87e4), 2.7, 6260.0), O, H2, H, OH)
    R2(K(OF_TWO(2.0e13)), O, HO2, OH, O2)
    R2(ARRHENIUS(OF_TWO(9.63e6), 2.0, 4000.0), O, H2O2, OH, HO2)
    R3(POWER(OF_THREE(2.8e18), -0.86), total - c_O2 - c_H2O - c_N2 - c_AR, H, O2, HO2)
    R3(POWER(OF_THREE(2.08e19), -1.24), c_O2, H, O2, HO2)
    R3(POWER(OF_THREE(1.126e19), -0.76), c_H2O, H, O2, HO2)
    R3(POWER(OF_THREE(2.6e19), -1.24), c_N2, H, O2, HO2)
    R3(POWER(OF_THREE(7.0e17), -0.8), c_AR, H, O2, HO2)
    R2(ARRHENIUS(OF_TWO(2.65e16), -0.6707, 17041.0), H, O2, O, OH)
    R3(POWER(OF_THREE(1.0e18), -1.0), total - c_H2 - c_H2O - K(0.37) * c_AR, H, H, H2)
    R3(POWER(OF_THREE(9.0e16), -0.6), c_H2, H, H, H2)
    R3(POWER(OF_THREE(6.0e19), -1.25), c_H2O, H, H, H2)
    R3(POWER(OF_THREE(2.2e22), -2.0), total - K(0.27) * c_H2 + K(2.65) * c_H2O - K(0.62) * c_AR, H,
       OH, H2O)
    R2(ACTIVATED(OF_TWO(3.97e12), 671.0), H, HO2, O, H2O)
    R2(ACTIVATED(OF_TWO(4.48e13), 1068.0), H, HO2, O2, H2)
    R2(ACTIVATED(OF_TWO(8.4e13), 635.0), H, HO2, OH, OH)
    R2(ARRHENIUS(OF_TWO(1.21e7), 2.0, 5200.0), H, H2O2, HO2, H2)
    R2(ACTIVATED(OF_TWO(1.0e13), 3600.0), H, H2O2, OH, H2O)
    R2(ARRHENIUS(OF_TWO(2.16e8), 1.51, 3430.0), OH, H2, H, H2O)
    R3(troe(ARRHENIUS(OF_THREE(2.3e18), -0.9, -1700.0), POWER(OF_TWO(7.4e13), -0.37),
            total + c_H2 + K(5.0) * c_H2O - K(0.3) * c_AR, T, per_T), 1, OH, OH, H2O2)
    R2(ARRHENIUS(OF_TWO(3.57e4), 2.4, -2110.0), OH, OH, O, H2O)
    R2(ACTIVATED(OF_TWO(1.45e13), -500.0), OH, HO2, O2, H2O)
    R2(ACTIVATED(OF_TWO(2.0e12), 427.0), OH, H2O2, HO2, H2O)
    R2(ACTIVATED(OF_TWO(1.7e18), 29410.0), OH, H2O2, HO2, H2O)
    R2(ACTIVATED(OF_TWO(1.3e11), -1630.0), HO2, HO2, O2, H2O2)
    R2(ACTIVATED(OF_TWO(4.2e14), 12000.0), HO2, HO2, O2, H2O2)
    R2(ACTIVATED(OF_TWO(5.0e15), 17330.0), OH, HO2, O2, H2O)

    PRODUCTION(H2, 0, 2.016)
    PRODUCTION(H, 1, 1.008)
    PRODUCTION(O, 2, 15.999)
    PRODUCTION(O2, 3, 31.998)
    PRODUCTION(OH, 4, 17.007)
    PRODUCTION(H2O, 5, 18.015)
    PRODUCTION(HO2, 6, 33.006)
    PRODUCTION(H2O2, 7, 34.014)
  }
}
