"""BibTeX entries of the papers that the metrics come from."""

from __future__ import annotations

CAO2022 = """@inproceedings{cao2022,
  author = {Jinkun Cao and Ruiqian Nai and Qing Yang and Jialei Huang and Yang Gao},
  title = {An Empirical Study on Disentanglement of Negative-free Contrastive Learning},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2022}
}"""
CHEN2018 = """@inproceedings{chen2018,
  author = {Ricky T. Q. Chen and Xuechen Li and Roger Grosse and David Duvenaud},
  title = {Isolating Sources of Disentanglement in Variational Autoencoders},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2018}
}"""
DO2020 = """@inproceedings{do2020,
  author = {Kien Do and Truyen Tran},
  title = {Theory and Evaluation Metrics for Learning Disentangled Representations},
  booktitle = {International Conference on Learning Representations},
  year = {2020}
}"""
EASTWOOD2018 = """@inproceedings{eastwood2018,
  author = {Cian Eastwood and Christopher K. I. Williams},
  title = {A Framework for the Quantitative Evaluation of Disentangled Representations},
  booktitle = {International Conference on Learning Representations},
  year = {2018}
}"""
EASTWOOD2023 = """@inproceedings{eastwood2023,
  author = {Cian Eastwood and Andrei Liviu Nicolicioiu and Julius von K{\\"u}gelgen and Armin Keki{\\'c} and
    Frederik Tr{\\"a}uble and Andrea Dittadi and Bernhard Sch{\\"o}lkopf},
  title = {{DCI-ES}: An Extended Disentanglement Framework with Connections to Identifiability},
  booktitle = {International Conference on Learning Representations},
  year = {2023}
}"""
GABBAY2020 = """@inproceedings{gabbay2020lord,
  author = {Aviv Gabbay and Yedid Hoshen},
  title = {Demystifying Inter-Class Disentanglement},
  booktitle = {International Conference on Learning Representations},
  year = {2020}
}"""
HIGGINS2017 = """@inproceedings{higgins2017,
  author = {Irina Higgins and Loic Matthey and Arka Pal and Christopher Burgess and Xavier Glorot and
    Matthew Botvinick and Shakir Mohamed and Alexander Lerchner},
  title = {beta-{VAE}: Learning Basic Visual Concepts with a Constrained Variational Framework},
  booktitle = {International Conference on Learning Representations},
  year = {2017}
}"""
HSU2023 = """@inproceedings{hsu2023,
  author = {Kyle Hsu and William Dorrell and James C. R. Whittington and Jiajun Wu and Chelsea Finn},
  title = {Disentanglement via Latent Quantization},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2023}
}"""
KIM2018 = """@inproceedings{kim2018,
  author = {Hyunjik Kim and Andriy Mnih},
  title = {Disentangling by Factorising},
  booktitle = {International Conference on Machine Learning},
  year = {2018}
}"""
KUMAR2018 = """@inproceedings{kumar2018,
  author = {Abhishek Kumar and Prasanna Sattigeri and Avinash Balakrishnan},
  title = {Variational Inference of Disentangled Latent Concepts from Unlabeled Observations},
  booktitle = {International Conference on Learning Representations},
  year = {2018}
}"""
LI2020 = """@inproceedings{li2020,
  author = {Zhiyuan Li and Jaideep Vitthal Murkute and Prashnna Kumar Gyawali and Linwei Wang},
  title = {Progressive Learning and Disentanglement of Hierarchical Representations},
  booktitle = {International Conference on Learning Representations},
  year = {2020}
}"""
LOCATELLO2019 = """@inproceedings{locatello2019,
  author = {Francesco Locatello and Stefan Bauer and Mario Lucic and Gunnar R{\\"a}tsch and Sylvain Gelly and
    Bernhard Sch{\\"o}lkopf and Olivier Bachem},
  title = {Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations},
  booktitle = {International Conference on Machine Learning},
  year = {2019}
}"""
LOCATELLO2019_FAIRNESS = """@inproceedings{locatello2019fairness,
  author = {Francesco Locatello and Gabriele Abbati and Tom Rainforth and Stefan Bauer and
    Bernhard Sch{\\"o}lkopf and Olivier Bachem},
  title = {On the Fairness of Disentangled Representations},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2019}
}"""
RIDGEWAY2018 = """@inproceedings{ridgeway2018,
  author = {Karl Ridgeway and Michael C. Mozer},
  title = {Learning Deep Disentangled Embeddings With the F-Statistic Loss},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2018}
}"""
SEPLIARSKAIA2019 = """@misc{sepliarskaia2019,
  author = {Anna Sepliarskaia and Julia Kiseleva and Maarten de Rijke},
  title = {How to Not Measure Disentanglement},
  howpublished = {arXiv:1910.05587},
  year = {2019}
}"""
SUTER2019 = """@inproceedings{suter2019,
  author = {Raphael Suter and Djordje Miladinovi{\\'c} and Bernhard Sch{\\"o}lkopf and Stefan Bauer},
  title = {Robustly Disentangled Causal Mechanisms: Validating Deep Representations for Interventional
    Robustness},
  booktitle = {International Conference on Machine Learning},
  year = {2019}
}"""
WATANABE1960 = """@article{watanabe1960,
  author = {Satosi Watanabe},
  title = {Information Theoretical Analysis of Multivariate Correlation},
  journal = {IBM Journal of Research and Development},
  volume = {4},
  number = {1},
  pages = {66--82},
  year = {1960}
}"""

KINGMA2018 = """@inproceedings{kingma2018glow,
  author = {Diederik P. Kingma and Prafulla Dhariwal},
  title = {Glow: Generative Flow with Invertible 1x1 Convolutions},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2018}
}"""

KINGMA2014 = """@inproceedings{kingma2014auto,
  title={Auto-Encoding Variational {B}ayes},
  author={Kingma, Diederik P. and Welling, Max},
  booktitle={International Conference on Learning Representations},
  year={2014}
}"""

KHEMAKHEM2020 = """@inproceedings{khemakhem2020,
  author = {Ilyes Khemakhem and Diederik P. Kingma and Ricardo Pio Monti and Aapo Hyv{\\"a}rinen},
  title = {Variational Autoencoders and Nonlinear {ICA}: A Unifying Framework},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year = {2020}
}"""
KHEMAKHEM2020ICE = """@inproceedings{khemakhem2020ice,
  author = {Ilyes Khemakhem and Ricardo Pio Monti and Diederik P. Kingma and Aapo Hyv{\\"a}rinen},
  title = {{ICE-BeeM}: Identifiable Conditional Energy-Based Deep Models Based on Nonlinear {ICA}},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2020}
}"""
KIM2019 = """@misc{kim2019,
  author = {Minyoung Kim and Yuting Wang and Pritish Sahu and Vladimir Pavlovic},
  title = {Relevance Factor {VAE}: Learning and Identifying Disentangled Factors},
  howpublished = {arXiv:1902.01568},
  year = {2019}
}"""
LOCATELLO2020 = """@article{locatello2020,
  author = {Francesco Locatello and Stefan Bauer and Mario Lucic and Gunnar R{\\"a}tsch and Sylvain Gelly and
    Bernhard Sch{\\"o}lkopf and Olivier Bachem},
  title = {A Sober Look at the Unsupervised Learning of Disentangled Representations and their Evaluation},
  journal = {Journal of Machine Learning Research},
  volume = {21},
  number = {209},
  pages = {1--62},
  year = {2020}
}"""
LOCATELLO2020_WEAK = """@inproceedings{locatello2020weakly,
  author = {Francesco Locatello and Ben Poole and Gunnar R{\\"a}tsch and Bernhard Sch{\\"o}lkopf and
    Olivier Bachem and Michael Tschannen},
  title = {Weakly-Supervised Disentanglement Without Compromises},
  booktitle = {International Conference on Machine Learning},
  year = {2020}
}"""
MICHLO2023 = """@inproceedings{michlo2023,
  author = {Nathan Michlo and Richard Klein and Steven James},
  title = {Overlooked Implications of the Reconstruction Loss for {VAE} Disentanglement},
  booktitle = {International Joint Conference on Artificial Intelligence},
  year = {2023}
}"""
VONKUGELGEN2021 = """@inproceedings{vonkugelgen2021,
  author = {Julius von K{\\"u}gelgen and Yash Sharma and Luigi Gresele and Wieland Brendel and
    Bernhard Sch{\\"o}lkopf and Michel Besserve and Francesco Locatello},
  title = {Self-Supervised Learning with Data Augmentations Provably Isolates Content from Style},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2021}
}"""
TONNAER2022 = """@inproceedings{tonnaer2022,
  author = {Loek Tonnaer and Luis Armando {P{\\'e}rez Rey} and Vlado Menkovski and Mike Holenderski and
    Jim Portegies},
  title = {Quantifying and Learning Linear Symmetry-Based Disentanglement},
  booktitle = {International Conference on Machine Learning},
  year = {2022}
}"""
ROSS2021 = """@inproceedings{ross2021,
  author = {Andrew Slavin Ross and Finale Doshi-Velez},
  title = {Benchmarks, Algorithms, and Metrics for Hierarchical Disentanglement},
  booktitle = {International Conference on Machine Learning},
  year = {2021}
}"""
